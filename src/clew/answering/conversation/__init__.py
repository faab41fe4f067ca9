"""Conversations: questions one after another, each of which may lean on those before it."""

from clew.answering.conversation.conversation import Conversation
from clew.answering.conversation.follow_ups import Turn

__all__ = ["Conversation", "Turn"]
