"""Signing in at a real provider on loopback, what its claims give, and that no forged way back opens anything."""

import json
import random
import re
import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

jwt = pytest.importorskip("jwt", reason="signing in elsewhere needs the extra oidc")
pytest.importorskip("cryptography", reason="signing in elsewhere needs the extra oidc")

from browser_fixtures import flaws  # noqa: E402
from clew.core.errors import InputError, SourceError  # noqa: E402
from clew.server.settings import ClientLimits  # noqa: E402
from clew.server.team.provider import Provider, ProviderSettings, read_provider  # noqa: E402
from oidc_provider import CLIENT, SECRET, made_key, provider_running  # noqa: E402
from repeats import repeats  # noqa: E402
from team_members import app_of, cheap_passwords, make_settings, make_team, visitor  # noqa: E402, F401
from web_server import running  # noqa: E402

ROLES = (
    {"value": "staff", "role": "reader", "base": "open"},
    {"value": "editors", "role": "editor", "base": "open"},
    {"value": "admins", "role": "admin"},
)


@pytest.fixture
def elsewhere():
    with provider_running() as provider:
        provider.claims |= {"groups": ["staff"]}
        yield provider


@pytest.fixture
def team(tmp_path, cheap_passwords):  # noqa: F811
    return make_team(tmp_path / "team.db")


def made(elsewhere, **more) -> Provider:
    told = {"issuer": elsewhere.address, "client_id": CLIENT, "client_secret": SECRET, "address": "http://localhost"}
    return Provider(ProviderSettings(**{**told, "title": "Example", "role": ROLES, **more}))


@pytest.fixture
def app(tmp_path, team, elsewhere):
    return app_of(make_settings(tmp_path, team, provider=made(elsewhere)))


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """A server that every test of a refused token may use, its team and its provider."""
    folder = tmp_path_factory.mktemp("refusing")
    team = make_team(folder / "team.db")
    with provider_running() as provider:
        yield (
            app_of(make_settings(folder, team, provider=made(provider), limits=ClientLimits(per_minute=100_000))),
            team,
            provider,
        )


def leave(page) -> str:
    """To the provider; returns where it leads back to."""
    there = page.get("/v1/oidc/start", follow_redirects=False)
    assert there.status_code == 303
    return httpx.get(there.headers["location"], timeout=60).headers["location"]


def come_back(page, address: str):
    """The link of the provider, as a browser follows it."""
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    return page.get(address, follow_redirects=False, headers=headers)


def refused(page, team, address: str, why: str) -> None:
    reply = come_back(page, address)
    assert reply.headers["location"] == "/#/sign-in?problem=provider"
    assert page.get("/v1/me").status_code == 401
    last = team.audit_log(most=1)[0]
    assert last.what == "sign-in refused"
    assert re.search(why, last.about), last.about


def signed_in(app):
    page = visitor(app)
    assert come_back(page, leave(page)).headers["location"] == "/"
    page.headers["x-csrf-token"] = page.get("/v1/me").json()["csrf"]
    return page


def test_a_user_signs_in_and_has_the_roles_of_the_claims(app, team, elsewhere):
    me = signed_in(app).get("/v1/me").json()
    assert (me["name"], me["roles"], me["must_change_password"]) == ("mia", {"open": "reader"}, False)
    elsewhere.claims["groups"] = ["editors", "staff", "nothing known"]
    assert signed_in(app).get("/v1/me").json()["roles"] == {"open": "editor"}, "the highest, at every sign-in"
    elsewhere.claims["groups"] = []
    page = signed_in(app)
    assert page.get("/v1/me").json()["roles"] == {}
    assert page.get("/v1/bases").json() == []
    assert [user.name for user in team.users.all()].count("mia") == 1
    assert visitor(app).sign_in("mia", "").status_code in (401, 422)
    assert visitor(app).sign_in("mia", "any password at all").status_code == 401, "there is none"


def test_without_rules_admins_give_the_roles_and_they_stay(tmp_path, team, elsewhere):
    app = app_of(make_settings(tmp_path, team, provider=made(elsewhere, role=())))
    assert signed_in(app).get("/v1/me").json()["roles"] == {}
    visitor(app, "root").patch("/v1/users/mia", json={"roles": {"open": "editor"}})
    assert signed_in(app).get("/v1/me").json()["roles"] == {"open": "editor"}


def test_claims_may_be_groups_of_bases(tmp_path, team, elsewhere):
    app = app_of(make_settings(tmp_path, team, provider=made(elsewhere, groups=True)))
    signed_in(app)
    assert team.users.named("mia").groups == ("staff",)


def test_a_name_that_somebody_has_here_is_not_given_to_another(app, team, elsewhere):
    elsewhere.claims["preferred_username"] = "Root"
    page = visitor(app)
    refused(page, team, leave(page), "belongs to another user")
    elsewhere.claims["preferred_username"] = "mia"
    signed_in(app)
    elsewhere.claims["sub"] = "43"
    page = visitor(app)
    refused(page, team, leave(page), "belongs to another user")


def test_one_who_is_switched_off_stays_out(app, team):
    signed_in(app)
    visitor(app, "root").patch("/v1/users/mia", json={"active": False})
    page = visitor(app)
    refused(page, team, leave(page), "disabled")


def test_another_browser_cannot_use_the_way_back(app, team):
    """Or somebody could sign a victim in as himself, and read what the victim asks."""
    back = leave(visitor(app))
    refused(visitor(app), team, back, "state does not match")
    page = visitor(app)
    leave(page)
    refused(page, team, back, "state does not match")


@pytest.mark.parametrize("state", ["", "x", "wrong" * 9])
def test_a_wrong_state_is_refused(refusing, state):
    app, team, _ = refusing
    page = visitor(app)
    code = parse_qs(urlsplit(leave(page)).query)["code"][0]
    refused(page, team, f"/v1/oidc/callback?code={code}&state={state}", "state does not match")


def test_a_way_back_works_once_and_for_ten_minutes(app, team):
    page = visitor(app)
    back = leave(page)
    cookie = page.cookies["clew-way"]
    assert come_back(page, back).headers["location"] == "/"
    again = visitor(app)
    again.cookies.set("clew-way", cookie)
    refused(again, team, back, "already used")
    late = visitor(app)
    back = leave(late)
    team.store.note("UPDATE login SET made = made - 700")
    refused(late, team, back, "took too long")


def test_a_replayed_or_stolen_code_gives_nothing(app, team, elsewhere):
    page = visitor(app)
    used = parse_qs(urlsplit(leave(page)).query)
    other = visitor(app)
    mine = parse_qs(urlsplit(leave(other)).query)
    stolen = f"/v1/oidc/callback?code={used['code'][0]}&state={mine['state'][0]}"
    refused(other, team, stolen, "no token for this code")  # another's code: the verifier does not fit it
    refused(visitor(app), team, "/v1/oidc/callback?code=x", "state does not match")
    assert elsewhere.codes.keys() == {mine["code"][0]}


def encoded(claims, key, algorithm, **header) -> str:
    return jwt.encode(claims, key, algorithm, headers={"kid": "first", **header})


TWISTS = {
    "wrong nonce": (lambda claims: claims | {"nonce": "another"}, "another login"),
    "no nonce": (lambda claims: {name: claims[name] for name in claims if name != "nonce"}, "another login"),
    "wrong audience": (lambda claims: claims | {"aud": "somebody else"}, "[Aa]udience"),
    "two audiences": (lambda claims: claims | {"aud": [CLIENT, "x"]}, "another client"),
    "wrong issuer": (lambda claims: claims | {"iss": "https://evil.example"}, "issuer"),
    "expired": (lambda claims: claims | {"iat": claims["iat"] - 900, "exp": claims["iat"] - 60}, "expired"),
    "from tomorrow": (lambda claims: claims | {"iat": claims["iat"] + 86_400}, "iat"),
    "no end": (lambda claims: {name: claims[name] for name in claims if name != "exp"}, "exp"),
    "nobody": (lambda claims: {name: claims[name] for name in claims if name != "sub"}, "sub"),
    "half a character": (lambda claims: claims | {"sub": "\ud800"}, "not plain text"),
    "no name": (lambda claims: claims | {"preferred_username": None}, "lacks the claim"),
    "a name that is none": (lambda claims: claims | {"preferred_username": "a b<script>"}, "invalid name"),
}
FORGED = {
    "unsigned": (lambda claims, _: jwt.encode(claims, "", "none", headers={"kid": "first"}), "alg"),
    "another key": (lambda claims, _: encoded(claims, made_key(), "RS256"), "[Ss]ignature"),
    "an unknown key": (lambda claims, own: encoded(claims, own.key, "RS256", kid="other"), "unknown key"),
    "a client's secret": (lambda claims, _: encoded(claims, SECRET * 3, "HS256"), "alg"),
    "no token": (lambda *_: "a.b.c", "invalid token"),
    "a changed token": (lambda claims, own: "x" + own.signed(claims), "invalid token"),
}


@pytest.mark.parametrize("how", TWISTS)
def test_a_token_that_says_something_else_is_refused(refusing, monkeypatch, how):
    app, team, provider = refusing
    twist, why = TWISTS[how]
    monkeypatch.setattr(provider, "twist", twist)
    page = visitor(app)
    refused(page, team, leave(page), why)
    assert "mia" not in [user.name for user in team.users.all()]


@pytest.mark.parametrize("how", FORGED)
def test_a_token_that_the_provider_has_not_signed_is_refused(refusing, monkeypatch, how):
    app, team, provider = refusing
    sign, why = FORGED[how]
    monkeypatch.setattr(provider, "sign", sign)
    page = visitor(app)
    refused(page, team, leave(page), why)
    assert "mia" not in [user.name for user in team.users.all()]


def dripping():
    while True:
        yield b" "
        time.sleep(0.05)


def endless():
    while True:
        yield b"[" * 65_536


BODIES = {
    "drips": dripping,
    "never ends": endless,
    "is nested": lambda: [b"[" * 100_000],
    "is a page": lambda: [b"<html>Down for maintenance</html>"],
    "is no object": lambda: [b"[1, 2]"],
    "has other types": lambda: [b'{"authorization_endpoint": 1, "token_endpoint": [], "keys": "x", "id_token": {}}'],
    "is cut off": lambda: [b'{"keys": [{"kty": "RSA", "n"'],
    "is nothing": list,
}


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token"])
@pytest.mark.parametrize("body", BODIES)
def test_a_provider_that_answers_anything_else_is_refused_in_time(tmp_path, monkeypatch, team, elsewhere, path, body):
    monkeypatch.setattr("clew.server.team.provider.SECONDS", 0.5)
    app = app_of(make_settings(tmp_path, team, provider=made(elsewhere)))
    elsewhere.pieces[path] = BODIES[body]
    page = visitor(app)
    if path == "/token":
        refused(page, team, leave(page), "no token for this code")
    else:
        assert page.get("/v1/oidc/start", follow_redirects=False).status_code == 502
    elsewhere.pieces.clear()
    assert signed_in(app).get("/v1/me").json()["name"] == "mia"


def _odd(pick):
    words = [
        "admins",
        "staff",
        "mia",
        "root",
        "*",
        CLIENT,
        "",
        " ",
        "a" * 5_000,
        "\x00",
        "\ud800",
        "../x",
        "ädä",
        "None",
    ]
    plain = [None, True, 0, -1, 2**70, 1e308, [], {}, *words]
    shape = pick.random()
    if shape < 0.2:
        return [pick.choice(plain) for _ in range(pick.randrange(4))]
    return {pick.choice(words): pick.choice(plain)} if shape < 0.3 else pick.choice(plain)


@pytest.mark.long
def test_nothing_that_a_provider_or_a_browser_sends_opens_more_than_the_rules_say(refusing, monkeypatch):
    """Random claims, damaged tokens and odd ways back: refused, or signed in with the roles of the claims."""
    app, _, provider = refusing
    for seed in range(repeats(30, 1_000)):
        pick = random.Random(seed)
        names = ["sub", "preferred_username", "groups", "nonce", "aud", "azp", "iss", "exp", "iat", "nbf", "email"]
        changed = {name: _odd(pick) for name in pick.sample(names, pick.randrange(4))}
        is_damaged = pick.random() < 0.2
        sent = {}

        def twist(claims, changed=changed, sent=sent, pick=pick):
            sent.update(claims | {"groups": ["staff"], "sub": f"sub {pick.randrange(30)}"} | changed)
            return sent

        def sign(claims, own, is_damaged=is_damaged, pick=pick):
            token = jwt.api_jws.encode(json.dumps(claims).encode(), own.key, "RS256", headers={"kid": own.key_name})
            place = pick.randrange(len(token))
            damaged = token[:place] + pick.choice(["", ".", "A", "é", "=" * 9]) + token[place + 1 :]
            return damaged if is_damaged else token

        monkeypatch.setattr(provider, "twist", twist)
        monkeypatch.setattr(provider, "sign", sign)
        page = visitor(app)
        address = leave(page)
        if pick.random() < 0.1:
            address = address.replace(pick.choice("=&?"), pick.choice(["%00", "&", "=&=", "%ff"]), 1)
        reply = come_back(page, address)
        assert reply.status_code < 500 or reply.status_code == 502, (seed, reply.status_code, changed)
        me = page.get("/v1/me")
        if me.status_code == 401:
            continue
        given = sent["groups"] if isinstance(sent["groups"], list) else [sent["groups"]]
        allowed = {rule.get("base", "*") for rule in ROLES if rule["value"] in given}
        assert set(me.json()["roles"]) <= allowed, (seed, changed)
        assert not {"nonce", "aud", "iss"} & changed.keys() or changed.get("aud") == CLIENT, (seed, changed)


def test_the_provider_may_change_its_keys(app, elsewhere):
    signed_in(app)
    elsewhere.key, elsewhere.key_name = made_key(), "second"
    signed_in(app)


def test_a_provider_that_is_none_leaves_the_server_as_it_is(tmp_path, team):
    settings = ProviderSettings(issuer="http://127.0.0.1:9", client_id=CLIENT, address="http://localhost")
    app = app_of(make_settings(tmp_path, team, provider=Provider(settings)))
    reply = visitor(app).get("/v1/oidc/start", follow_redirects=False)
    assert reply.status_code == 502
    assert visitor(app).sign_in("root").status_code == 200


def test_cookies_are_for_https_where_browsers_come_by_it(tmp_path, team, elsewhere):
    settings = make_settings(tmp_path, team, provider=made(elsewhere, address="https://clew.example.org"))
    app = app_of(replace(settings, hosts=("clew.example.org",)))
    page = visitor(app, host="clew.example.org")
    there = page.get("/v1/oidc/start", follow_redirects=False)
    assert "secure" in there.headers["set-cookie"].lower()
    assert "samesite=lax" in there.headers["set-cookie"].lower()
    back = httpx.get(there.headers["location"], timeout=60).headers["location"]
    state = parse_qs(urlsplit(back).query)["state"][0]
    reply = come_back(visitor(app, host="clew.example.org", cookie=f"clew-way={state}"), back)
    [session] = [one for one in reply.headers.get_list("set-cookie") if one.startswith("__Host-clew=")]
    assert {"secure", "httponly", "samesite=strict"} <= {part.strip().lower() for part in session.split(";")}


def test_no_secret_of_the_client_reaches_a_browser(app, capfd):
    page = visitor(app)
    there = page.get("/v1/oidc/start", follow_redirects=False)
    told = [str(there.headers), page.get("/health").text, page.get("/openapi.json").text, *capfd.readouterr()]
    assert not [text for text in told if SECRET in text]


def test_a_file_of_a_provider_is_checked(tmp_path):
    file = tmp_path / "provider.toml"
    file.write_text('issuer = "https://login.example.org"\nclient_id = "clew"\naddress = "https://clew.example.org"\n')
    file.chmod(0o644)
    with pytest.raises(SourceError, match="chmod 600"):
        read_provider(file)
    file.chmod(0o600)
    assert read_provider(file).name == "preferred_username"
    file.write_text(file.read_text().replace("https://login", "http://login"))
    with pytest.raises(InputError, match="https://"):
        read_provider(file)
    file.write_text('issuer = "https://login.example.org"\nsecret = "s3cret"\n')
    with pytest.raises(SourceError, match="client_id: Field required") as told:
        read_provider(file)
    assert "s3cret" not in str(told.value)


def test_the_page_leads_there_and_back(browser, tmp_path, team, elsewhere):
    from clew.server.running import listen

    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce", bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    listening = listen("127.0.0.1", 0)
    settings = make_settings(tmp_path, team, limits=ClientLimits(per_minute=100_000))
    provider = made(elsewhere, address=f"http://127.0.0.1:{listening.getsockname()[1]}")
    with running(replace(settings, provider=provider), listening) as address:
        page.goto(address)
        page.get_by_role("link", name="Sign in with Example").wait_for()
        assert flaws(page) == []
        page.get_by_role("link", name="Sign in with Example").click()
        page.get_by_role("link", name="Account: mia").wait_for()
        page.get_by_label("Your question").fill("Which disease has extra fingers?")
        page.keyboard.press("Enter")
        page.locator(".answered[aria-busy=false] .follow").wait_for()
        page.get_by_role("link", name="Account: mia").click()
        page.get_by_role("heading", name="Tokens for programs").wait_for()
        assert page.get_by_label("Present password").count() == 0, "there is none to change"
        page.get_by_role("button", name="Sign out").click()
        elsewhere.twist = TWISTS["wrong nonce"][0]
        page.get_by_role("link", name="Sign in with Example").click()
        page.get_by_role("alert").filter(has_text="did not work").wait_for()
        assert flaws(page) == []
    context.close()
