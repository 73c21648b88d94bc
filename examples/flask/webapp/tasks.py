"""The tasks, without Flask. One that needs the configuration of the web application enters its context."""

from crossdock import App
from webapp.database import transaction

app = App(name="webapp")  # one for the whole application; connects to CROSSDOCK_URL at the first push


@app.task(queue="mail", retries=5)
def welcome(user_id: int) -> str:
    from webapp.web import web  # here, because the web application imports this module

    with web.app_context(), transaction() as connection:
        name = connection.execute("SELECT name FROM users WHERE id = ?", [user_id]).fetchone()[0]
        return web.config["GREETING"].format(name=name)
