"""The web application."""

from sqlite3 import IntegrityError

from flask import Flask, request
from flask.typing import ResponseReturnValue

from webapp.database import transaction
from webapp.tasks import app, welcome

web = Flask(__name__)
web.config["GREETING"] = "welcome, {name}"


@web.post("/users")
def sign_up() -> ResponseReturnValue:
    try:
        with transaction() as connection:
            name = request.get_json()["name"]
            found = connection.execute("INSERT INTO users (name) VALUES (?) RETURNING id", [name])
            user_id = found.fetchone()[0]
    except IntegrityError:
        return {"error": "the name is taken"}, 409
    handle = welcome.push(user_id)  # after the commit: the worker finds the user
    return {"id": user_id, "job": handle.id}, 201


@web.get("/jobs/<jid>")
def job_state(jid: str) -> ResponseReturnValue:
    return {"state": app.handle(jid).state()}
