"""Actions of each browser that has not solved a captcha: the route, the read model, its captcha requests, its API."""
