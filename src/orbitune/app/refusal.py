"""A request that is answered with a sentence instead of what was asked for."""

from http import HTTPStatus

from orbitune.errors import OrbituneError


class Refused(OrbituneError):
    """What is wrong with a request, and the HTTP status that says so."""

    def __init__(self, sentence: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST):
        super().__init__(sentence)
        self.status = status
