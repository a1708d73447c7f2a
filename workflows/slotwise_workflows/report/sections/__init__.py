"""The report's sections, a file for each group: from a `Diagnosis` and the words to blocks."""
