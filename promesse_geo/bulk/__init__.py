"""Bulk work: Arrow tables of other engines, and folders of Parquet beyond memory."""
