"""The views."""

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from people.models import User
from people.tasks import app, welcome


@csrf_exempt
@transaction.atomic
def sign_up(request: HttpRequest) -> JsonResponse:
    name = json.loads(request.body)["name"]
    if User.objects.filter(name=name).exists():
        return JsonResponse({"error": "the name is taken"}, status=409)
    user = User.objects.create(name=name)
    job = welcome.job(user.pk)
    transaction.on_commit(job.push)
    return JsonResponse({"id": user.pk, "job": job.id}, status=201)


def job_state(request: HttpRequest, jid: str) -> JsonResponse:
    return JsonResponse({"state": app.handle(jid).state()})
