"""The sections of a workload file, one file each."""
