"""How migrations run: on the connection that the ledger hands over, inside its transaction."""

from alembic import context

# Without a configuration somebody merely imports this file.
if hasattr(context, "config"):
    handed = context.config.attributes
    context.configure(connection=handed["connection"], version_table=handed["version_table"])
    context.run_migrations()
