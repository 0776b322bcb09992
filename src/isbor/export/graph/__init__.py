"""The description of a model as an ONNX graph, one function for each section of docs/export.md.

The description is all that is known of a model here, as in a reader of the JSON file.
"""
