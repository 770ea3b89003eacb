"""Signing in and out with a browser: the credential is in a cookie that no script can read and no other site can use."""

from http import HTTPStatus
from urllib.parse import parse_qsl

from flask import Blueprint, Response, request

from include.access.audit import AuditLog
from query_api.access.credentials import CredentialError, Credentials, CredentialsUnavailableError
from query_api.http.access.guard import (
    COOKIE,
    NOBODY,
    SECURE_COOKIE,
    cookie_name,
    cookie_of,
    is_encrypted,
    require_own_origin,
)
from query_api.http.access.sign_in_page import own_target, sign_in_page
from query_api.http.limits.body_deadline import BodyDeadline, BodyTimeoutError
from query_api.http.pages.pages import HTML, page_headers
from query_api.http.problems import ProblemError, busy_problem
from query_api.lookup.client_slots import ClientSlots, NoFreeSlotError

PATH = "/sign-in"
OUT_PATH = "/sign-out"
FORM = "application/x-www-form-urlencoded"
MAX_BODY_BYTES = 16 * 1024
MAX_FIELDS = 4
# Anybody may send a form: at most so many are read at a time.
FORMS = 8
HEADERS = {**page_headers(), "Cache-Control": "no-store"}


def sign_in_blueprint(credentials: Credentials, audit: AuditLog, body_timeout_s: float) -> Blueprint:
    """Return the page as a Flask blueprint. audit: where failed attempts are recorded."""
    blueprint = Blueprint("access", __name__)
    deadline, slots = BodyDeadline(body_timeout_s), ClientSlots(FORMS, client_share=0.75)

    @blueprint.get(PATH)
    def sign_in() -> Response:
        credential, caller = cookie_of(request.environ), ""
        if credential is not None:
            try:
                caller = credentials.caller(credential).name
            except (CredentialError, CredentialsUnavailableError):
                caller = ""
        return Response(
            sign_in_page(request.args.get("next", ""), caller=caller), content_type=HTML, headers=HEADERS
        )

    @blueprint.post(PATH)
    def sign_in_with() -> Response:
        require_own_origin(request.environ)
        try:
            with slots.slot(request.remote_addr or ""):
                form = _form(deadline)
        except NoFreeSlotError as error:
            raise busy_problem(error, "too-many-requests", retry_after_s=1) from error
        credential, target = form.get("credential", "").strip(), form.get("next", "")
        try:
            credentials.caller(credential)
        except CredentialError as error:
            client = request.remote_addr
            audit.refused(NOBODY, problem="unauthenticated", method="POST", path=PATH, client=client)
            page = sign_in_page(target, str(error))
            return Response(page, HTTPStatus.UNAUTHORIZED, HEADERS, content_type=HTML)
        except CredentialsUnavailableError as error:
            raise ProblemError(503, "not-ready", str(error), retry_after_s=1) from error
        response = _redirect(own_target(target))
        response.set_cookie(
            cookie_name(request.environ),
            credential,
            secure=is_encrypted(request.environ),
            httponly=True,
            samesite="Strict",
        )
        return response

    @blueprint.post(OUT_PATH)
    def sign_out() -> Response:
        require_own_origin(request.environ)
        response = _redirect(PATH)
        for name in (COOKIE, SECURE_COOKIE):
            response.delete_cookie(
                name, secure=is_encrypted(request.environ), httponly=True, samesite="Strict"
            )
        return response

    return blueprint


def _redirect(target: str) -> Response:
    return Response(status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": target})


def _form(deadline: BodyDeadline) -> dict[str, str]:
    """Return the fields of the request's form; raises ProblemError."""
    length = request.content_length
    if request.mimetype != FORM or length is None or length > MAX_BODY_BYTES:
        raise ProblemError(415, "unsupported-media-type", f"Send a form of at most {MAX_BODY_BYTES} bytes.")
    try:
        body = deadline.read(request.stream, length, request.remote_addr or "")
        return dict(parse_qsl(body.decode(errors="replace"), max_num_fields=MAX_FIELDS))
    except BodyTimeoutError as error:
        raise ProblemError(408, "body-timeout", "The form was not complete in time.") from error
    except ValueError as error:
        raise ProblemError(400, "invalid-form", f"The form has more than {MAX_FIELDS} fields.") from error
