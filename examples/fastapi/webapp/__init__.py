"""An example with FastAPI: `uvicorn webapp.main:api`, and `crossdock worker run webapp.tasks`."""
