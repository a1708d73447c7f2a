"""Running a workflow for a host: inputs file in, output directory and events file out."""
