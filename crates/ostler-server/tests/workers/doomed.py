"""Never becomes a worker."""

raise SystemExit("as asked")
