"""The pipeline that answers every request, and what its handlers get."""
