"""`python -m proxy_operator` is the installed command."""

from proxy_operator.cli.main import main

if __name__ == "__main__":
    main()
