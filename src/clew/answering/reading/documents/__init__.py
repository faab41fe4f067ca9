"""Questions over documents: passages searched and read closely, the parts that a question names, tables, summaries."""
