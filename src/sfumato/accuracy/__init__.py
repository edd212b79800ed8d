"""Accuracy: theorems as functions of public numbers."""
