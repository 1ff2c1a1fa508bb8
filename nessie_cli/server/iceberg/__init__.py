"""The Iceberg REST catalog below `/iceberg`: tables, views and namespaces of each revision.

Specification: https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""
