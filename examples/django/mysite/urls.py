"""URLs of the project."""

from django.urls import path
from people import views

urlpatterns = [path("users", views.sign_up), path("jobs/<str:jid>", views.job_state)]
