"""Evidence: the snippets of text that a day's questions are shown with, frozen with them."""

from __future__ import annotations

from django.db import models

from markets.models.question import QuestionEntry


class EvidenceSnippet(models.Model):
    """A snippet about a question, as every model is shown it. Dates are those that its source states."""

    entry = models.ForeignKey(QuestionEntry, on_delete=models.CASCADE, related_name="snippets")
    position = models.PositiveSmallIntegerField(help_text="Its place among the snippets of its question, from 1.")
    title = models.CharField(max_length=500, blank=True)
    url = models.TextField(blank=True)
    source = models.CharField(max_length=200, blank=True, help_text="The publisher, or the host of the address.")
    published_at = models.DateTimeField(null=True, blank=True, help_text="As its source states; null if it does not.")
    retrieved_at = models.DateTimeField(help_text="Never after the freeze.")
    text = models.TextField()
    sha256 = models.CharField(max_length=64, help_text="SHA-256 of the text.")
    states_outcome = models.BooleanField(
        null=True, blank=True, help_text="Whether it states what happened; null until the question has resolved."
    )
    audited_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["entry", "position"], name="one_snippet_per_entry_and_position"),
        ]
        ordering = ["entry_id", "position"]

    def __str__(self) -> str:
        return self.title or self.url or self.text[:80]

    @property
    def link(self) -> str:
        """Its address, if it is one of the web; a page must link to no other."""
        return self.url if self.url.startswith(("https://", "http://")) else ""
