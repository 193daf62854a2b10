"""Holds files that go into a bundle as they are; the site does not run them."""
