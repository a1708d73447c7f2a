"""The report's pictures, one file each, as Vega-Lite: plain data in, plain dictionaries out.

No string out of a log enters a picture. Series differ in colour and in shape or dash; marks keep a
contrast of 3:1 against the page.
"""
