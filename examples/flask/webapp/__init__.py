"""An example with Flask: `flask --app webapp.web run`, and `crossdock worker run webapp.tasks`."""
