"""The pages that show values, scores and what led to them. Read-only, whole without JavaScript."""
