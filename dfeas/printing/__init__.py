"""What commands print: a few lines for people, or one JSON object. Results only; progress goes elsewhere."""
