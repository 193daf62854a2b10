"""Addresses of the site."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("leaderboard.api.urls")),
    path("admin/", admin.site.urls),
]
handler500 = "leaderboard.api.errors.server_error"
