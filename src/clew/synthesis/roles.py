"""Who asks: what people in a role care about and how they speak, for the prompts (STaRK's appendix B in our words)."""

from __future__ import annotations

INSTRUCTIONS = {
    "user": "The question is plain and to the point.",
    "doctor": "Doctors ask directly and practically, about signs, complications, side effects and treatment.",
    "medical scientist": "Medical scientists ask precisely, about causes, genes, pathways and mechanisms.",
    "patient": "Patients avoid technical terms, tell a little of their situation and say what they feel.",
    "customer": "Customers say what they need the thing for and what it should be like.",
    "researcher": "Researchers name topics, methods and findings.",
}


def instruction(role: str) -> str:
    """One sentence on how a role speaks; nothing for a role that is not known."""
    return INSTRUCTIONS.get(role, "")
