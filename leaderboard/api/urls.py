"""Addresses of the API."""

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView

urlpatterns = [
    path("schema", SpectacularJSONAPIView.as_view(), name="api-schema"),
]
