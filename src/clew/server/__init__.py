"""The web app and its API."""
