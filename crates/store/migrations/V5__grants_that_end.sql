-- A grant that is about to end gives no more blocks. Nobody can open a stream with a block of its last seconds (an opener keeps
-- a margin for the clocks), so it was asked for again and again, and a grant behind it that still holds was never reached.

-- Admits a contract, or says why not. One call is one statement and one transaction. Each query inside sees what was
-- committed before it; so what is read after the slice's row is locked is what stands.
create or replace function admit_contract(
    the_contract uuid, the_network integer, the_account uuid, the_proxy_account text, the_opener uuid,
    the_request uuid, wanted bigint, at_least bigint, at_time timestamptz, until timestamptz, due timestamptz,
    until_minute integer, most_open integer, most_open_of_login integer, first_slice integer,
    out verdict text, out admitted uuid, out admitted_bytes bigint, out ends_at timestamptz, out free_again_at timestamptz
) language plpgsql as $$
declare
    earlier record;
    part record;
    free bigint;
    first_minute integer;
    has_grant boolean := false;
    has_live_grant boolean := false;
begin
    select c.contract, c.bytes, c.expires_at into earlier
        from contract c where c.opener = the_opener and c.request = the_request;
    if found then
        verdict := 'admitted';
        admitted := earlier.contract; admitted_bytes := earlier.bytes; ends_at := earlier.expires_at;
        return;
    end if;
    perform from account a where a.account = the_account and a.network = the_network and a.disabled_at is null;
    if not found then verdict := 'account_disabled'; return; end if;
    if (select count(*) from (select from open_contract o where o.account = the_account limit most_open) as few) >= most_open
    then verdict := 'limit_contracts'; return; end if;
    if the_proxy_account is not null and most_open_of_login > 0 and (select count(*) from (select from open_contract o
        where o.account = the_account and o.proxy_account = the_proxy_account limit most_open_of_login) as few) >= most_open_of_login
    then verdict := 'limit_contracts'; return; end if;

    for part in
        select s.byte_grant, s.slice,
            g.starts_at <= at_time and g.expires_at > at_time + interval '30 seconds' as live,
            least(until, g.expires_at) as until
        from byte_grant g join grant_slice s using (byte_grant)
        where g.account = the_account and g.network = the_network and g.expires_at > at_time
        order by g.expires_at, g.byte_grant, (s.slice - first_slice + 16) % 16
    loop
        has_grant := true;
        continue when not part.live;
        has_live_grant := true;
        -- A first look without the lock: slices that are used up cost no wait.
        continue when slice_free(part.byte_grant, part.slice, at_time) < at_least;
        perform from grant_slice s where s.byte_grant = part.byte_grant and s.slice = part.slice for no key update;
        free := slice_free(part.byte_grant, part.slice, at_time);
        continue when free < at_least;

        admitted_bytes := least(greatest(wanted, at_least), free);
        insert into contract as c values (the_contract, the_network, the_account, the_proxy_account, the_opener, the_request,
            part.byte_grant, part.slice, admitted_bytes, until_minute, at_time, part.until)
            on conflict (opener, request) do nothing;
        if not found then
            -- The same request at the same time: the other one has the block.
            select c.contract, c.bytes, c.expires_at into earlier
                from contract c where c.opener = the_opener and c.request = the_request;
            verdict := 'admitted';
            admitted := earlier.contract; admitted_bytes := earlier.bytes; ends_at := earlier.expires_at;
            return;
        end if;
        insert into open_contract values (the_contract, the_account, the_proxy_account, due);
        insert into hold as h values (part.byte_grant, part.slice, until_minute, admitted_bytes)
            on conflict (byte_grant, slice, minute) do update set bytes = h.bytes + excluded.bytes;
        verdict := 'admitted'; admitted := the_contract; ends_at := part.until;
        return;
    end loop;

    if not has_grant then
        has_grant := exists (select from byte_grant g where g.account = the_account and g.network = the_network);
        verdict := case when has_grant then 'grant_expired' else 'no_grant' end;
    elsif not has_live_grant then
        verdict := 'grant_expired';
    else
        verdict := 'grant_spent';
        select min(h.minute) into first_minute
            from byte_grant g join hold h using (byte_grant) left join hold_release r using (byte_grant, slice, minute)
            where g.account = the_account and g.network = the_network
              and g.starts_at <= at_time and g.expires_at > at_time
              and h.minute > extract(epoch from at_time) / 60 and h.bytes > coalesce(r.bytes, 0);
        free_again_at := to_timestamp(first_minute::double precision * 60);
    end if;
end
$$;
