"""Sources of evidence: web searches by key, and a folder of files. docs/extend.md says how to add one."""
