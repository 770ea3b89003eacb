"""The emission `captcha-requests`: one request for each browser that reaches 5 actions without a solved captcha."""

from foldlake import Emission

DECLARATIONS = [
    Emission(
        name="captcha-requests",
        read_model="browser-actions",
        output_topic="captcha-requests",
        output_type="CaptchaRequest",
        # A captcha that was not solved leaves the count as it is: only the action that reaches the threshold emits.
        where="kind = 'ACTION' AND state.unsolved = 5",
        fields={"occurredOn": "occurredOn", "browserHash": "browserHash", "actions": "state.actions"},
    ),
]
