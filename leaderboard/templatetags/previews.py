"""What a page says of itself to those who link to it."""

from __future__ import annotations

from django import template
from django.template import Context, NodeList
from django.template.loader_tags import BlockNode

register = template.Library()


@register.simple_tag(takes_context=True)
def block_again(context: Context, name: str) -> str:
    """A block of the page once more: a template may name it in one place only."""
    return BlockNode(name, NodeList()).render(context)
