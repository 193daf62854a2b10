"""Knows where accounts get their mail."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.contrib.auth.models import AbstractBaseUser


def confirmed_address(owner: AbstractBaseUser) -> str:
    """Return the address that an account has confirmed; empty where there is none."""
    confirmed = EmailAddress.objects.filter(user=owner.pk, verified=True)
    return str(confirmed.order_by("-primary").values_list("email", flat=True).first() or "")
