"""Tournament on Path and Think-on-Graph: relation paths and walks from the topic entities."""
