"""The tasks, without FastAPI: a worker does not import the web application."""

import logging

from pydantic import BaseModel

from crossdock import App, current_job

log = logging.getLogger(__name__)

app = App(name="webapp")  # one for the whole application; connects to CROSSDOCK_URL at the first push


class User(BaseModel):
    id: int
    name: str


@app.task(queue="mail", retries=5)
async def welcome(user: User) -> str:
    log.info("mail to %s, job %s", user.name, current_job().id)
    return f"welcome, {user.name}"
