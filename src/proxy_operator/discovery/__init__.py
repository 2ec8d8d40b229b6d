"""What crawlers ask for, independent of HTTP: list, acquire, release, report, renew."""
