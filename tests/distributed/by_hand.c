/*
 * Two aggregates that call the functions of another aggregate by hand, as Citus does to spread an aggregate over nodes:
 *
 *   partial_state(aggregate, argument)         -> bytea    on each node; several arguments come as one row
 *   merge_states(aggregate, state, NULL::type) -> type     where the states arrive
 *
 * What differs from a call by the executor: functions are looked up anew for each row, so what they remember ends with
 * the row, and they are not told which expression they are called for.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "fmgr.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(partial_state_transition);
PG_FUNCTION_INFO_V1(partial_state_final);
PG_FUNCTION_INFO_V1(merge_states_transition);
PG_FUNCTION_INFO_V1(merge_states_final);

#define MOST_ARGUMENTS 8

typedef struct State
{
	Oid			aggregate;
	NullableDatum value;
} State;

/* The state of our own aggregate: the argument, or a new one that lives as long as the aggregate. */
static State *
own_state(FunctionCallInfo fcinfo)
{
	MemoryContext context;
	State	   *state;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "called in non-aggregate context");
	if (!PG_ARGISNULL(0))
		return (State *) PG_GETARG_POINTER(0);
	state = MemoryContextAllocZero(context, sizeof(State));
	state->aggregate = PG_GETARG_OID(1);
	state->value.isnull = true;
	return state;
}

static FormData_pg_aggregate
form_of(Oid aggregate)
{
	FormData_pg_aggregate form;
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "%u is no aggregate", aggregate);
	form = *(Form_pg_aggregate) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	return form;
}

/* Calls a function on behalf of the aggregate that is being computed. */
static NullableDatum
call(FunctionCallInfo fcinfo, Oid function, int nargs, const NullableDatum *args)
{
	LOCAL_FCINFO(inner, MOST_ARGUMENTS);
	FmgrInfo	info;
	NullableDatum result;

	fmgr_info(function, &info);
	InitFunctionCallInfoData(*inner, &info, nargs, fcinfo->fncollation, fcinfo->context, fcinfo->resultinfo);
	memcpy(inner->args, args, nargs * sizeof(NullableDatum));
	result.value = FunctionCallInvoke(inner);
	result.isnull = inner->isnull;
	return result;
}

/* (state, aggregate, argument or row of arguments) */
Datum
partial_state_transition(PG_FUNCTION_ARGS)
{
	State	   *state = own_state(fcinfo);
	NullableDatum args[MOST_ARGUMENTS] = {state->value, fcinfo->args[2]};
	int			nargs = 2;

	if (get_fn_expr_argtype(fcinfo->flinfo, 2) == RECORDOID)
	{
		HeapTupleHeader row = PG_GETARG_HEAPTUPLEHEADER(2);
		HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(row), .t_data = row};
		TupleDesc	columns = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));

		nargs = 1 + columns->natts;
		if (nargs > MOST_ARGUMENTS)
			elog(ERROR, "too many arguments");
		for (int i = 1; i < nargs; i++)
			args[i].value = heap_getattr(&tuple, i, columns, &args[i].isnull);
		ReleaseTupleDesc(columns);
	}
	state->value = call(fcinfo, form_of(state->aggregate).aggtransfn, nargs, args);
	PG_RETURN_POINTER(state);
}

/* (state) */
Datum
partial_state_final(PG_FUNCTION_ARGS)
{
	State	   *state = PG_ARGISNULL(0) ? NULL : (State *) PG_GETARG_POINTER(0);
	NullableDatum bytes;

	if (state == NULL || state->value.isnull)
		PG_RETURN_NULL();
	bytes = call(fcinfo, form_of(state->aggregate).aggserialfn, 1, &state->value);
	if (bytes.isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(bytes.value);
}

/* (state, aggregate, bytes, type) */
Datum
merge_states_transition(PG_FUNCTION_ARGS)
{
	State	   *state = own_state(fcinfo);
	FormData_pg_aggregate form = form_of(state->aggregate);
	NullableDatum states[2] = {state->value, {.isnull = true}};

	if (!PG_ARGISNULL(2))
	{
		NullableDatum bytes[2] = {fcinfo->args[2], {0}};

		states[1] = call(fcinfo, form.aggdeserialfn, 2, bytes);
	}
	state->value = call(fcinfo, form.aggcombinefn, 2, states);
	PG_RETURN_POINTER(state);
}

/* (state, …) */
Datum
merge_states_final(PG_FUNCTION_ARGS)
{
	State	   *state = (State *) PG_GETARG_POINTER(0);
	NullableDatum result = call(fcinfo, form_of(state->aggregate).aggfinalfn, 1, &state->value);

	if (result.isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(result.value);
}
