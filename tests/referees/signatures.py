"""Signed requests as botocore signs them, for the vendor that wants them."""

import json
from datetime import datetime, timezone
from unittest import mock

from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

TIME = datetime(2026, 3, 1, 12, 30, 45, tzinfo=timezone.utc)
HOST = "https://bedrock-runtime.eu-central-1.amazonaws.com"
CASES = (
    (f"{HOST}/model/amazon.nova-lite-v1%3A0/converse-stream", '{"messages":[]}', None),
    (
        f"{HOST}/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Ainference-profile%2Feu.x/converse-stream",
        '{"text":"Zürich ☂"}',
        "session-token-1",
    ),
    ("http://127.0.0.1:4566/model/x/invoke", "{}", None),
)


def write() -> str:
    signed = []
    for url, body, session in CASES:
        request = AWSRequest("POST", url, data=body.encode())
        credentials = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/EXAMPLEKEY", session)
        with mock.patch.object(auth, "get_current_datetime", lambda *_, **__: TIME.replace(tzinfo=None)):
            auth.SigV4Auth(credentials, "bedrock", "eu-central-1").add_auth(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        signed.append({"url": url, "body": body, "session": session, "headers": headers})
    return json.dumps({"unix": int(TIME.timestamp()), "signed": signed}, ensure_ascii=False, indent=1) + "\n"
