"""Reads that join several models; reads of one model are methods of its QuerySet."""
