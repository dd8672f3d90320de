"""HTTP with the endpoint: a request's bytes out, a reply or its fault back."""
