"""Conversations: sequences of questions that may refer to earlier questions."""

from clew.answering.conversation.conversation import Conversation
from clew.answering.conversation.follow_ups import Turn

__all__ = ["Conversation", "Turn"]
