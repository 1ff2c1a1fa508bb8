"""The Iceberg REST catalog below `/iceberg`: tables, views and namespaces on branches, tags and commits.

Specification: https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""
