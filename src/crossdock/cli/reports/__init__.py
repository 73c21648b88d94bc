"""How the reports look: each is laid out once as a page, and the page is shown in a terminal or written as HTML."""
