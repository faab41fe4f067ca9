"""The steps that methods are composed of: functions from values to values."""
