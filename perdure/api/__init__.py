"""The native API under `/v1`, as a gateway serves it and `HttpClient` calls it."""
