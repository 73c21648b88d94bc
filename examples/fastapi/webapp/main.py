"""The web application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from sqlite3 import IntegrityError

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from webapp.database import transaction
from webapp.tasks import User, app, welcome


@asynccontextmanager
async def lifespan(api: FastAPI) -> AsyncIterator[None]:
    yield
    await app.aclose()


api = FastAPI(lifespan=lifespan)


class NewUser(BaseModel):
    name: str


@api.post("/users", status_code=201)
async def sign_up(new: NewUser) -> dict[str, object]:
    try:
        with transaction() as connection:
            found = connection.execute("INSERT INTO users (name) VALUES (?) RETURNING id", [new.name])
            user = User(id=found.fetchone()[0], name=new.name)
    except IntegrityError:
        raise HTTPException(409, "the name is taken") from None
    handle = await welcome.apush(user)  # after the commit: the worker finds the user
    return {"id": user.id, "job": handle.id}


@api.get("/jobs/{jid}")
async def job_state(jid: str) -> dict[str, str]:
    return {"state": await app.handle(jid).astate()}
