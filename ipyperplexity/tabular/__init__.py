"""Columns and tables: the one room that knows pandas, polars and Arrow, and knows no Answer."""
