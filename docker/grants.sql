-- What the site's role `pkb` may do in the tables of the role `pkb_owner`. Safe to repeat; docs/deploy.md runs it
-- after each migrate or restore. TRUNCATE is never granted. Triggers refuse to change the audit log as well.
GRANT USAGE ON SCHEMA public TO pkb;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO pkb;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO pkb;
ALTER DEFAULT PRIVILEGES FOR ROLE pkb_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO pkb;
ALTER DEFAULT PRIVILEGES FOR ROLE pkb_owner IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO pkb;
REVOKE UPDATE, DELETE ON leaderboard_auditentry FROM pkb;
-- Only the owner migrates.
REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM pkb;
