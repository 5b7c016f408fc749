"""Files and frames of forecasts in long or wide form, read into one table of columns."""
