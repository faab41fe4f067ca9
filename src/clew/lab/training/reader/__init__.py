"""Train the two encoders of the learned reader on questions over many schemas."""
