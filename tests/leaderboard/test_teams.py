"""Teams: who joins, what members see, what owners may, and tokens that outlast a member."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from leaderboard.kit.request_error import RequestError
from leaderboard.models import (
    ApiToken,
    Invitation,
    Membership,
    Moderation,
    Notice,
    Role,
    Submission,
    Team,
)
from leaderboard.runs import banning
from leaderboard.submissions import moderation, teams
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api

pytestmark = [pytest.mark.django_db, pytest.mark.server]

ONE = {
    **{"model": "Ours", "harness": "zero-shot", "problem": "allreduce", "backend": "pytorch"},
    **{"source": factory.SOURCE, "visibility": "private"},
}
ACME = "/account/teams/acme"


@pytest.fixture
def acme(owner: User, other: User) -> Team:
    """A team of `owner`, its owner, and `other`, a member."""
    team = teams.create(owner, "Acme")
    Membership.objects.create(team=team, user=other, role=Role.MEMBER)
    return team


def as_user(name: str) -> Client:
    client = Client()
    client.force_login(factory.make_user(name))
    return client


def hand_in(api: Any, **fields: object) -> Any:
    return api.post("/api/v1/submissions", {**ONE, **fields}, format="json")


@pytest.fixture
def ours(acme: Team, api: Api, other: User, problem: object) -> Submission:
    """A private submission that `other` handed in for the team."""
    answer = hand_in(api(other), team="acme")
    return Submission.objects.get(pk=answer.json()["submission"])


def test_members_see_what_is_private_and_nobody_else(
    ours: Submission, api: Api, owner: User
) -> None:
    run = ours.kernels.get().runs.get()
    stranger = factory.make_user("stranger")
    places = [f"/submissions/{ours.pk}", f"/submissions/{ours.pk}.json", f"/runs/{run.pk}"]
    for path in [*places, f"/kernels/{run.kernel.source_id}"]:
        assert as_user("owner").get(path).status_code == 200, path
        assert as_user("stranger").get(path).status_code == 404, path
        assert Client().get(path).status_code == 404, path
    for user, status, count in ((owner, 200, 1), (stranger, 404, 0)):
        assert api(user).get(f"/api/v1/submissions/{ours.pk}").status_code == status
        assert api(user).get(f"/api/v1/runs/{run.pk}").status_code == status
        for lists in ("submissions", "runs"):
            assert len(api(user).get(f"/api/v1/{lists}").json()["results"]) == count
    assert api(owner).get(f"/api/v1/submissions/{ours.pk}").json()["team"] == "acme"
    assert api(owner).get("/api/v1/submissions?mine=1").json()["results"] == []
    edits = f'href="/submissions/{ours.pk}/edit"'
    third = factory.make_user("third")
    Membership.objects.create(team=Team.objects.get(), user=third, role=Role.MEMBER)
    for name, may_edit in (("owner", True), ("other", True), ("third", False)):
        page = as_user(name).get(ACME).content.decode()
        assert "Ours" in page
        assert (edits in page) is may_edit
    assert "Ours" not in Client().get("/teams/acme").content.decode()


def test_owners_of_the_team_may_what_who_handed_in_may(
    ours: Submission, api: Api, owner: User, acme: Team
) -> None:
    address = f"/api/v1/submissions/{ours.pk}"
    member = factory.make_user("third")
    Membership.objects.create(team=acme, user=member, role=Role.MEMBER)
    assert api(member).patch(address, {"notes": "No."}, format="json").status_code == 403
    assert api(member).post(f"{address}/withdraw", {}, format="json").status_code == 403
    assert api(owner).patch(address, {"notes": "Yes."}, format="json").status_code == 200
    assert api(owner).post(f"{address}/publish", {}, format="json").status_code == 200
    assert "Ours" in Client().get("/teams/acme").content.decode()
    assert Client().get("/teams/acme.json").json()["submissions"][0]["model"] == "Ours"
    assert "/teams/acme" in Client().get(f"/submissions/{ours.pk}").content.decode()
    assert "<td>team</td>" in as_user("other").get(f"/submissions/{ours.pk}/edit").content.decode()


def test_who_has_left_keeps_only_what_they_handed_in(
    ours: Submission, acme: Team, owner: User, other: User, api: Api
) -> None:
    theirs = hand_in(api(owner), team="acme", notes="Of the owner.").json()["submission"]
    assert api(other).get(f"/api/v1/submissions/{theirs}").status_code == 200
    assert as_user("other").post(ACME, {"do": "remove", "user": other.pk}).status_code == 302
    assert api(other).get(f"/api/v1/submissions/{theirs}").status_code == 404
    assert api(other).get(f"/api/v1/submissions/{ours.pk}").status_code == 200
    assert as_user("other").get(ACME).status_code == 404
    assert hand_in(api(other), team="acme").json()["error"]["code"] == "unknown_team"


def test_a_token_of_the_team_outlasts_a_member_and_hands_in_for_it_alone(
    acme: Team, owner: User, other: User, api: Api, problem: object
) -> None:
    assert as_user("other").post(ACME, {"do": "issue", "token": "ci"}).status_code == 403
    page = as_user("owner").post(ACME, {"do": "issue", "token": "ci"}).content.decode()
    [text] = re.findall(r"<code>(pkb_[\w-]{40,})</code>", page)
    alone = hand_in(api(owner)).json()["submission"]
    teams.create(owner, "Second")
    Membership.objects.create(team=acme, user=factory.make_user("next"), role=Role.OWNER)
    teams.remove(acme, owner, owner.pk)
    client = api()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    made = Submission.objects.get(pk=hand_in(client).json()["submission"])
    assert (made.team, made.owner) == (acme, acme.account)
    assert hand_in(client, team="second").json()["error"]["code"] == "unknown_team"
    assert client.get(f"/api/v1/submissions/{made.pk}").status_code == 200
    assert client.get(f"/api/v1/submissions/{alone}").status_code == 404
    moderation.moderate(made, other, Moderation.DISPUTED, "Why?")
    assert [row.owner.get_username() for row in Notice.objects.all()] == ["next"]
    number = ApiToken.objects.get(owner=acme.account).pk
    as_user("next").post(ACME, {"do": "revoke", "token": number})
    assert hand_in(client).status_code == 401
    assert not acme.account.has_usable_password()


def test_an_invitation_is_accepted_by_who_has_that_name(acme: Team, client: Client) -> None:
    told = {"do": "invite", "username": "guest", "role": "owner"}
    assert as_user("other").post(ACME, told).status_code == 403
    there, absent = (
        as_user("owner").post(ACME, {**told, "username": name}).status_code
        for name in ("guest", "nobody-there")
    )
    assert there == absent == 302
    number = Invitation.objects.get(username="guest").pk
    accept = {"invitation": number, "do": "accept", "is_shown": "1"}
    as_user("stranger").post("/account/teams", accept)
    assert not Membership.objects.filter(user__username="stranger").exists()
    assert "invites you as an owner" in as_user("guest").get("/account/teams").content.decode()
    assert as_user("guest").post("/account/teams", accept).status_code == 302
    assert Membership.objects.get(user__username="guest").role == Role.OWNER
    page = client.get("/teams/acme").content.decode()
    assert "guest" in page
    assert "other" not in page.split("Its members")[1].split("</p>")[0]
    as_user("guest").post(ACME, {"do": "show"})
    assert client.get("/teams/acme.json").json()["members"] == []


def test_an_old_or_declined_invitation_is_gone(acme: Team, owner: User) -> None:
    teams.invite(acme, owner, "guest", Role.MEMBER)
    guest, number = factory.make_user("guest"), Invitation.objects.get().pk
    Invitation.objects.update(made_at=timezone.now() - timedelta(days=15))
    teams.answer(guest, number, accepts=True)
    assert acme.memberships.count() == 2
    teams.invite(acme, owner, "guest", Role.MEMBER)
    teams.answer(guest, number, accepts=False)
    assert not Invitation.objects.exists()
    assert acme.memberships.count() == 2


def test_a_member_who_is_invited_as_an_owner_becomes_one_and_no_owner_less(
    acme: Team, owner: User, other: User
) -> None:
    for user, role in ((other, Role.OWNER), (owner, Role.MEMBER)):
        teams.invite(acme, owner, user.get_username().upper(), role)
        teams.answer(user, Invitation.objects.get().pk, accepts=True)
    assert acme.memberships.filter(role=Role.OWNER).count() == 2


def test_a_token_of_the_team_ends_with_its_last_owner_who_may_sign_in(
    acme: Team, owner: User, other: User, staff: User, api: Api
) -> None:
    client = api(acme.account)
    made = banning.ban(owner, staff, "Cheats.")
    assert client.get("/api/v1/problems").status_code == 401
    acme.memberships.filter(user=other).update(role=Role.OWNER)
    assert client.get("/api/v1/problems").status_code == 200
    acme.memberships.filter(user=other).delete()
    banning.lift(made, staff)
    assert client.get("/api/v1/problems").status_code == 200


def test_a_team_keeps_an_owner(acme: Team, owner: User) -> None:
    answer = as_user("owner").post(ACME, {"do": "remove", "user": owner.pk})
    assert (answer.status_code, acme.memberships.count()) == (400, 2)
    assert "A team keeps an owner." in answer.content.decode()


@pytest.mark.parametrize(
    "name",
    [
        *("Acme", "ACME!", "acme", "Асме", "Ac\u200bme", "Ac\u202eme", "Аcme", "Ａcme", "Ac\xadme"),
        *(
            "",
            "-",
            "Staff",
            "Moderator",
            "PKB Leaderboard",
            "0fficial",
            "x" * 61,
            "a\nb",
            "<b>",
            " acme",
        ),
    ],
)
def test_names_that_mislead_are_refused(name: str, acme: Team, other: User) -> None:
    with pytest.raises(RequestError):
        teams.create(other, name)
    assert Team.objects.count() == 1
    assert User.objects.filter(username__startswith="team:").count() == 1


def test_a_team_is_made_on_the_page(owner: User) -> None:
    answer = as_user("owner").post("/account/teams", {"name": "The R&D-Lab"})
    assert answer["Location"] == "/account/teams/the-rd-lab"
    again = as_user("other").post("/account/teams", {"name": "The RD Lab"})
    assert again.status_code == 400
    page = as_user("owner").get("/submit").content.decode()
    assert '<option value="the-rd-lab">The R&amp;D-Lab</option>' in page
